from django.db import models


class Order(models.Model):
    number = models.IntegerField()
    mailed = models.BooleanField(default=False)
