"""What people may do about a case: the situation they see, the rules that allow it, and the verbs that do it."""
