"""`samples.wanderbricks`: a simulated marketplace of holiday homes.

It has the columns, types, shares and quirks of the data set of that name. `tables` lists its
tables; `generate` makes their rows.
"""
