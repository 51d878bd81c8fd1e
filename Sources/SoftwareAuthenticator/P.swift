internal let placeholder = 1
