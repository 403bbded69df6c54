"""How does a person drive it?"""
