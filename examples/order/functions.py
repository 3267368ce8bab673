"""The functions of the order flow. The bank is busy at first; an order of more than 1000 is refused, one for Mars can't be shipped."""
import json
from http.server import BaseHTTPRequestHandler, HTTPServer

payments = []
def pay(order):
    payments.append(order)
    if len(payments) == 1: return 503, {}
    if order["amount"] > 1000: return 402, {"error": "Payment.Refused", "cause": "over the limit"}
    return 200, {"receipt": f"p-{order['id']}"}
def ship(order):
    if order.get("to") == "Mars": return 500, {"error": "Ship.NoRoute", "cause": "nobody flies there"}
    return 200, {"parcel": f"s-{order['id']}"}
FUNCTIONS = {"/reserve": lambda order: (200, {"reservation": f"r-{order['id']}"}), "/release": lambda order: (200, {}),
             "/pay": pay, "/refund": lambda order: (200, {}), "/ship": ship}

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try: status, answer = FUNCTIONS[self.path](order)
        except KeyError as missing: status, answer = 400, {"error": "Order.Incomplete", "cause": f"there is no {missing}"}
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

HTTPServer(("127.0.0.1", 9000), Handler).serve_forever()
