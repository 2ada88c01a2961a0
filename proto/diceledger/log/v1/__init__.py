"""Generated protobuf code of diceledger.log.v1; see the .proto files beside it."""
