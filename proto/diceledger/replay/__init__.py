"""Generated protobuf code of diceledger.replay; see the .proto files beside it."""
