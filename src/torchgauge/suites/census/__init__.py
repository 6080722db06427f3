"""The dynamic operator census: which aten operators, in which dtypes, each model of the suites asks for."""
