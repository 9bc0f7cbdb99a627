"""What if the classes were more or less frequent?"""
