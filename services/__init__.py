"""The services around the engine: log, match, projector, replay, client and command line."""
