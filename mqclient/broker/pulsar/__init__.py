"""The Pulsar side of the embedded broker: one file per family of commands, each with its table at the top."""
