"""Pages and tables in HTML: the report of a comparison, and what notebooks show of models, programs and runs."""
