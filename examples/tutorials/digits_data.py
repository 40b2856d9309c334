"""The images that the tutorials' convolutional networks train on, in place of MNIST, CIFAR-10 and SVHN, which are downloads: scikit-learn's
handwritten digits."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def load_data():
    """(x_train, y_train), (x_test, y_test): 1437 and 360 images of 8 x 8 with values from 0 to 255, and their digits."""
    images, labels = load_digits(return_X_y=True)
    x = (images * (255 / 16)).astype("uint8").reshape(-1, 8, 8)
    x_train, x_test, y_train, y_test = train_test_split(x, labels, test_size=360, random_state=0, stratify=labels)
    return (x_train, y_train), (x_test, y_test)
