import MultipeerConnectivity

#if os(Linux)
    import Glibc
    /// The one file here that knows Nigh. The environment variable `NIGH_TRANSPORTS` chooses what carries the sessions of these tests;
    /// memory if it is not set.
    let transportsAreChosen: Void = {
        if ProcessInfo.processInfo.environment["NIGH_TRANSPORTS"] == nil {
            NighMultipeer.configure { $0.transports = "memory" }
        }
        let keys = FileManager.default.temporaryDirectory.appendingPathComponent("keys-\(UUID().uuidString)")
        NighMultipeer.configure { $0.identityFolder = keys.path }
        atexit { try? FileManager.default.removeItem(atPath: NighMultipeer.settings.identityFolder) }
    }()

    /// How many peers may be in a session, oneself included.
    func setMaximumNumberOfPeers(_ number: Int) {
        NighMultipeer.configure { $0.maximumNumberOfPeers = number }
    }
#else
    let transportsAreChosen: Void = ()
#endif
