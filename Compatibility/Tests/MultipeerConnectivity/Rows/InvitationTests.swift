import MultipeerConnectivity
import Testing

/// Rows 6, 7, 9 to 15 and 17 of the table in the guide: from an invitation to a connected peer, or not.
@Suite("An invitation", .timeLimit(.minutes(10))) struct InvitationTests {
    private let service = Device.service()

    private func pair() -> (Device, Device) {
        (Device("Puma", service: service), Device("Lynx", service: service))
    }

    @Test("that is accepted leads through connecting to connected, on both sides")
    func states() async {
        let (puma, lynx) = pair()
        await puma.connect(lynx)
        #expect(puma.states(of: lynx.id) == [.connecting, .connected])
        #expect(lynx.states(of: puma.id) == [.connecting, .connected])
        puma.end()
        await lynx.wait(for: .state(puma.id, .notConnected))
        await puma.wait(for: .state(lynx.id, .notConnected))
        lynx.end()
    }

    @Test(
        "brings its context, and an empty one is not the same as none",
        arguments: [nil, Data(), Data(count: 20_000)])
    func context(_ context: Data?) async {
        let (puma, lynx) = pair()
        await puma.invite(lynx, context: context)
        await lynx.wait(for: .invitation(puma.id, context))
        await puma.wait(for: .state(lynx.id, .connected))
        puma.end()
        lynx.end()
    }

    @Test("of a peer that was never found is reported with the name that the program knows it by")
    func neverFound() async throws {
        let puma = Device("Puma", service: service)
        let name = Held<String>()
        puma.onState = { peer, _ in name.give(peer.displayName) }
        let otter = MCPeerID(displayName: "Otter")
        puma.browser.invitePeer(otter, to: puma.session, withContext: nil, timeout: 0.1)
        #expect(try await name.value() == "Otter")
        puma.end()
    }

    @Test("may have any time for its answer, also an infinite one", arguments: [.infinity, 1e300, 0.01e9])
    func anyTime(_ timeout: TimeInterval) async {
        let (puma, lynx) = pair()
        await puma.invite(lynx, timeout: timeout)
        await puma.wait(for: .state(lynx.id, .connected))
        puma.end()
        lynx.end()
    }

    @Test("that is declined, or whose handler is gone, leaves the inviter not connected")
    func declined() async {
        for answer in [Device.Answer.decline, .nothing] {
            let (puma, lynx) = pair()
            lynx.answer = answer
            await puma.invite(lynx)
            await puma.wait(for: .state(lynx.id, .notConnected))
            #expect(puma.states(of: lynx.id) == [.notConnected] && lynx.states(of: puma.id).isEmpty)
            puma.end()
            lynx.end()
        }
    }

    @Test(
        "that is not answered in its time leaves the inviter not connected, and a late answer changes nothing"
    )
    func late() async {
        let (puma, lynx) = pair()
        lynx.answer = .keep
        await puma.invite(lynx, timeout: 1)
        await puma.wait(for: .state(lynx.id, .notConnected))
        for handler in lynx.handlers { handler(true, lynx.session) }
        lynx.answer = .accept
        await puma.connect(lynx)
        #expect(puma.states(of: lynx.id) == [.notConnected, .connecting, .connected])
        puma.end()
        lynx.end()
    }

    @Test("is answered by the first call of its handler, on whatever thread it comes")
    func twice() async {
        let (puma, lynx) = pair()
        lynx.answer = .keep
        await puma.invite(lynx)
        await lynx.wait { $0.contains { if case .invitation = $0 { true } else { false } } }
        let passed = Passed((lynx.handlers[0], lynx.session))
        DispatchQueue.concurrentPerform(iterations: 8) { _ in passed.value.0(true, passed.value.1) }
        passed.value.0(false, nil)
        await puma.wait(for: .state(lynx.id, .connected))
        await lynx.wait(for: .state(puma.id, .connected))
        #expect(lynx.states(of: puma.id) == [.connecting, .connected])
        puma.end()
        lynx.end()
    }

    @Test(
        "that crosses the other side's leads to one connection, also if only one side accepts",
        arguments: [false, true])
    func crossing(onlyOneAccepts: Bool) async throws {
        let (puma, lynx) = pair()
        if onlyOneAccepts { puma.answer = .nothing }
        for device in [puma, lynx] {
            device.advertiser.startAdvertisingPeer()
            device.browser.startBrowsingForPeers()
        }
        _ = try await puma.found("Lynx")
        _ = try await lynx.found("Puma")
        for (inviter, invited) in [(puma, lynx), (lynx, puma)] {
            inviter.browser.invitePeer(
                invited.id, to: inviter.session, withContext: Data("from \(inviter.id.displayName)".utf8),
                timeout: Device.patience)
        }
        await puma.wait(for: .invitation(lynx.id, Data("from Lynx".utf8)))
        await lynx.wait(for: .invitation(puma.id, Data("from Puma".utf8)))
        await puma.wait(for: .state(lynx.id, .connected))
        await lynx.wait(for: .state(puma.id, .connected))
        #expect(puma.session.connectedPeers == [lynx.id] && lynx.session.connectedPeers == [puma.id])
        #expect(puma.states(of: lynx.id).filter { $0 == .connected }.count == 1)
        #expect(lynx.states(of: puma.id).filter { $0 == .connected }.count == 1)
        puma.end()
        lynx.end()
    }

    @Test("leads into the session that it was for, and not into another one of the same peer")
    func otherSession() async throws {
        let (puma, lynx) = pair()
        let other = MCSession(peer: lynx.id)
        other.delegate = lynx
        lynx.invitationSession = other
        await puma.invite(lynx)
        await puma.wait(for: .state(lynx.id, .connected))
        await lynx.wait(for: .state(puma.id, .connected))
        #expect(other.connectedPeers == [puma.id] && lynx.session.connectedPeers.isEmpty)
        other.disconnect()
        puma.end()
        lynx.end()
    }

    @Test(
        "with a timeout of zero ends after the time of the settings, which is 30 s", arguments: [true, false])
    func noTimeout(isAnswered: Bool) async {
        let puma =
            isAnswered
            ? Device("Puma", service: service) : withShortTimes { Device("Puma", service: service) }
        let lynx = Device("Lynx", service: service)
        if !isAnswered { lynx.answer = .keep }
        await puma.invite(lynx, timeout: 0)
        await puma.wait(for: .state(lynx.id, isAnswered ? .connected : .notConnected))
        puma.end()
        lynx.end()
    }

    @Test(
        "whose certificates are never answered ends on both sides, after the time of the settings, which is 30 s"
    )
    func noCertificateAnswer() async {
        let puma = Device("Puma", service: service)
        let lynx = withShortTimes { Device("Lynx", service: service) }
        lynx.certificateAnswer = { _, _ in }
        await puma.invite(lynx)
        await lynx.wait(for: .state(puma.id, .notConnected))
        await puma.wait(for: .state(lynx.id, .notConnected))
        #expect(lynx.states(of: puma.id) == [.connecting, .notConnected])
        #expect(lynx.session.connectedPeers.isEmpty && puma.session.connectedPeers.isEmpty)
        puma.end()
        lynx.end()
    }

    @Test("leads to nothing if a delegate in the form of older programs refuses the certificates")
    func olderForm() async {
        for older in [OlderProgram(), NonEscapingProgram()] as [any MCSessionDelegate] {
            let (puma, lynx) = pair()
            lynx.session.delegate = older
            await puma.invite(lynx)
            await puma.wait(for: .state(lynx.id, .notConnected))
            #expect(puma.states(of: lynx.id) == [.connecting, .notConnected])
            puma.end()
            lynx.end()
        }
    }

    @Test(
        "shows certificates, which decide whether the peer is connected", arguments: [true, false],
        [true, false])
    func certificates(hasAny: Bool, isAccepted: Bool) async throws {
        let shown: [Any]? = hasAny ? [Data("certificate".utf8)] : nil
        let puma = Device("Puma", service: service, certificates: shown)
        let lynx = Device("Lynx", service: service)
        lynx.certificateAnswer = { [unowned lynx, id = puma.id] certificates, handler in
            #expect(certificates as? [Data] == shown as? [Data])
            #expect(lynx.states(of: id) == [.connecting])
            Thread.detachNewThread { [answer = Passed(handler)] in answer.value(isAccepted) }
        }
        await puma.invite(lynx)
        let outcome = isAccepted ? MCSessionState.connected : .notConnected
        await puma.wait(for: .state(lynx.id, outcome))
        await lynx.wait(for: .state(puma.id, outcome))
        #expect(puma.states(of: lynx.id) == [.connecting, outcome])
        puma.end()
        lynx.end()
    }
}
