"""The build at which a case became slower."""
