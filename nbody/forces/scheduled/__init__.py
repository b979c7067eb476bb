"""``gpu-scheduled``, an experiment: the kernel of ``gpu-symmetric`` with the instructions of its inner loop in another
order.

A multiply-add reads three registers and a register bank delivers one per cycle; ptxas orders instructions by latency
only, so the loop waits for banks in every seventh cycle. This package reads the compiled machine code of Hopper
(sm_90, "SASS"), chooses an order in which successive multiply-adds share operands, assigns registers and control bits,
verifies the result and loads it in place of the compiler's. It gains 3 % to 5 % on an H200. It is an experiment that only
``--engine gpu-scheduled`` uses, because NVIDIA documents neither the encoding nor the latencies. They were measured here,
and two wrong latencies gave wrong sums in 86 of 662 orders and in 1 of 56 runs before they were corrected
(:mod:`.operations`). The checks and one comparison with the compiler's results cannot exclude a third.

Start with :mod:`.engine` (when an order is tried and which one is used) and :mod:`.reorder` (one order, from the compiler's
machine code to the new one). Below them: :mod:`.instruction`, :mod:`.operations` and :mod:`.operands` (the encoding),
:mod:`.liveness` and :mod:`.scoreboard` (data flow through the kernel), :mod:`.block` (the loop); :mod:`.schedule` with
:mod:`.pipeline`, :mod:`.allocation` and :mod:`.emit` (a new order); :mod:`.check` (its verification).
"""
