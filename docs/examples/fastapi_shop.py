"""A shop on FastAPI: an order and the job that sends its receipt are made in one transaction."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel

from musterd import AsyncClient, NoSuchJob

URL = os.environ["SHOP_DATABASE_URL"]
pool = AsyncConnectionPool(URL, open=False, min_size=1)
client = AsyncClient(URL)


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
    async with pool, client:
        yield


app = FastAPI(lifespan=lifespan)


class Order(BaseModel):
    customer: str


@app.post("/orders", status_code=201)
async def order(body: Order) -> dict[str, int]:
    async with pool.connection() as connection:  # commits at the end of the block
        cursor = await connection.execute(
            "insert into orders (customer) values (%s) returning id", [body.customer]
        )
        ((order_id,),) = await cursor.fetchall()
        payload = {"order": order_id, "customer": body.customer}
        job_id = await client.enqueue("receipt", payload, connection=connection)
    return {"order": order_id, "job": job_id}


@app.get("/receipts/{job_id}")
async def receipt(job_id: int) -> dict[str, Any]:
    """Waits for the job: PostgreSQL tells when it ends, and other requests go on meanwhile."""
    try:
        job = await client.wait(job_id, timeout=20)
    except NoSuchJob as error:
        raise HTTPException(404, str(error)) from None
    except TimeoutError as error:
        raise HTTPException(503, str(error)) from None
    return {"state": job["state"], "result": job["result"]}
