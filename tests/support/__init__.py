"""What tests share: enumeration, seeded chance, fakes and builders.  None of it ships."""
