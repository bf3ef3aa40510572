import sys

from hbnn.reference.scoring import main

sys.exit(main())
