"""Generated protobuf code of diceledger.match.v1; see the .proto files beside it."""
