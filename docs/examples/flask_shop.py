"""A shop on Flask: an order and the job that sends its receipt are made in one transaction."""

import os
from typing import Any

from flask import Flask, request
from psycopg_pool import ConnectionPool

from musterd import Client, NoSuchJob

URL = os.environ["SHOP_DATABASE_URL"]
pool = ConnectionPool(URL, open=True, min_size=1)
client = Client(URL)  # one for all threads; it connects when it is first used
app = Flask(__name__)


@app.post("/orders")
def order() -> tuple[dict[str, int], int]:
    customer = request.get_json()["customer"]
    with pool.connection() as connection:  # commits at the end of the block
        cursor = connection.execute(
            "insert into orders (customer) values (%s) returning id", [customer]
        )
        ((order_id,),) = cursor.fetchall()
        payload = {"order": order_id, "customer": customer}
        job_id = client.enqueue("receipt", payload, connection=connection)
    return {"order": order_id, "job": job_id}, 201


@app.get("/receipts/<int:job_id>")
def receipt(job_id: int) -> tuple[dict[str, Any], int]:
    try:
        job = client.wait(job_id, timeout=20)
    except NoSuchJob as error:
        return {"detail": str(error)}, 404
    except TimeoutError as error:
        return {"detail": str(error)}, 503
    return {"state": job["state"], "result": job["result"]}, 200
