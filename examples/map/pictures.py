"""Prints the names of so many pictures: pictures.py 100000"""
import json, sys
print(json.dumps({"pictures": [f"p{number}.jpg" for number in range(int(sys.argv[1]))]}))
