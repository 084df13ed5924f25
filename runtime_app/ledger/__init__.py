"""The business ledger: operations, their calls and evidence, balances and holds, as parts of transitions."""
