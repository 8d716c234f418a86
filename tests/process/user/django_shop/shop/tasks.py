from shop.models import Order

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task


@task(queue_name="mail", priority=7)
def mail(number: int, *, greeting: str = "hello") -> dict[str, object]:
    order = Order.objects.get(number=number)
    order.mailed = True
    order.save()
    return {"number": number, "greeting": greeting}


@task
async def count() -> int:
    return await Order.objects.acount()


@task(takes_context=True)
def flaky(context: object) -> int:
    if context.attempt < 2:
        raise ValueError("the line is busy")
    return context.attempt


@task
def broken() -> None:
    raise LookupError("no such order")
