// QLinearConvNext on Hopper.
