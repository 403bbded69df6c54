"""Where may a value, an effect, an event come from?"""
