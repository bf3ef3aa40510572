"""What courses need of Python: grading of assignments, and what a class has learned."""
