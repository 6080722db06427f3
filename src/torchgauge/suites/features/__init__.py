"""The suite of features: how a model is executed, one family of questions after another."""
