"""The report of a device: its kit and its page. docs/device_report.md says what they hold."""
