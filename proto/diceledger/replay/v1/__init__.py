"""Generated protobuf code of diceledger.replay.v1; see the .proto files beside it."""
