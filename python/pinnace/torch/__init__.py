"""PyTorch models on their way to the importer: exported, read from archives, checked."""
