import FKCore
print("fk")
