"""What the services share: log, admission, wire formats, settings, authentication, metrics."""
