"""What the model is shown: projection of the journal, preparation of a request."""
