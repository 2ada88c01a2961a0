"""Generated protobuf code of diceledger.match; see the .proto files beside it."""
