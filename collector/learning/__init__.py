"""Learning from tallies: small public models, each computed of reports of one metric."""

from .reading import reports_of as reports_of
