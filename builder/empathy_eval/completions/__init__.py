"""From a request to its completion: out of the ledger first, else from a model, within pace and budget, however it is delivered."""
