"""Generated protobuf code of diceledger.log; see the .proto files beside it."""
