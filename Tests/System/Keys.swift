/// Keys of other kinds and forms, made with the `openssl` command for these tests and used nowhere else.
enum Keys {
    static let ellipticCurve = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgLmxtOh3Hqq1KEY30
        GByKARTAdXaMsg/TuLPj1IgI5LqhRANCAARpXXMNwOJkX2e3DAVfntTve+cqSauu
        Ef7qHzP/1sbSpXY+ve5E+fstuJOPhIsUW19YPxkPa74EuuD+JnTE4LpN
        -----END PRIVATE KEY-----

        """

    static let ellipticCurveOldForm = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIK0BLFHekzmotinfsAgucn7Ab763hVhDNxAjFAqS0uHLoAoGCCqGSM49
        AwEHoUQDQgAE1uIHkThUqKB4Ks/I7Sa6LMG7dFyIkumG5bpdS7Ywlb+yNHdtmgJk
        gDsc5Q2N5eo8Hxa7Q6Ns581SuhbJvJSJPQ==
        -----END EC PRIVATE KEY-----

        """

    static let ed448 = """
        -----BEGIN PRIVATE KEY-----
        MEcCAQAwBQYDK2VxBDsEObZChXZ9SnrGbWde8VU4M/dZAvFKXX0KSgw7+ugrldhm
        BzP5t+RAiKdD3G8THLmzYSH6Df1l8ZCFjA==
        -----END PRIVATE KEY-----

        """

    static let x25519 = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VuBCIEICDIllAWLBmdaDPciLdR+i5w2+z/WFPUel8ZweBQEcB+
        -----END PRIVATE KEY-----

        """

    static let withPassword = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgBHNAHZXd9eQICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEO+Dx27kq7WhNHPz4e/mnwEEQFJS
        7YSMpFyy144FUmOTGm1b9Hqq6VPYmtbVkNvIz5XJFww7eQ7s+rHvXypwUfPrYj56
        2+OyH0gZBS66gE9Kfso=
        -----END ENCRYPTED PRIVATE KEY-----

        """
}
