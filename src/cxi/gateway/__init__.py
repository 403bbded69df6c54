"""How do agents reach it with no change of code?"""
