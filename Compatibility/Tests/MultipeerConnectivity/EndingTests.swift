#if os(Linux)
    import MultipeerConnectivity
    import Testing

    /// The program that ends is a process of its own.
    @Suite("A program that ends", .timeLimit(.minutes(10))) struct EndingTests {
        @Test("has sent what it sent before it disconnected")
        func lastMessages() async throws {
            let service = Device.service()
            let puma = Device("Puma", service: service)
            overTCP { puma.advertiser.startAdvertisingPeer() }
            await #expect(processExitsWith: .success) { [service = service as String] in
                let lynx = Device("Lynx", service: service)
                lynx.onState = { [unowned lynx] peer, state in
                    guard state == .connected else { return }
                    for number in UInt8(0)..<50 {
                        try? lynx.session.send(Data([number]), toPeers: [peer], with: .reliable)
                    }
                    lynx.session.disconnect()
                    exit(0)
                }
                overTCP { lynx.browser.startBrowsingForPeers() }
                let peer = try await lynx.found("Puma")
                lynx.browser.invitePeer(
                    peer, to: lynx.session, withContext: nil, timeout: Device.patience)
                await lynx.wait { _ in false }
            }
            await puma.wait { $0.contains { if case .state(_, .notConnected) = $0 { true } else { false } } }
            let messages = puma.events.compactMap { if case .message(_, let data) = $0 { data } else { nil } }
            #expect(messages == (UInt8(0)..<50).map { Data([$0]) })
            puma.end()
        }
    }
#endif
