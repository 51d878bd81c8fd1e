"""What the files of docs/vectors are made from, and the machines that check them."""
