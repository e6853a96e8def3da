import MultipeerConnectivity

/// New sessions of two peers connect and part, again and again.
func connects(_ count: Int) {
    let (puma, lynx) = pair()
    var failures = 0
    let start = Date()
    for _ in 0..<count {
        puma.renew()
        lynx.renew()
        if !puma.connect(lynx) { failures += 1 }
        puma.session.disconnect()
    }
    print("\(count) connects of new sessions: \(failures) failed, \(Date().timeIntervalSince(start)) s")
}

/// New peers, which find each other, connect and are let go.
func cycles(_ count: Int) {
    func cycle() -> Bool {
        let (puma, lynx) = pair()
        defer {
            for party in [puma, lynx] {
                party.advertiser.stopAdvertisingPeer()
                party.browser.stopBrowsingForPeers()
                party.session.disconnect()
            }
        }
        return puma.connect(lynx)
    }
    var failures = 0
    for _ in 0..<5 where !cycle() { failures += 1 }
    Thread.sleep(forTimeInterval: 10)
    let before = (Machine.descriptors, Machine.memory.now)
    for round in 1...count {
        if !cycle() { failures += 1 }
        if round % 50 == 0 {
            print("\(round): \(Machine.descriptors) descriptors, \(Machine.memory.now) MiB")
        }
    }
    Thread.sleep(forTimeInterval: 10)
    print(
        """
        \(count) cycles of new peers: \(failures) failed; descriptors \(before.0) before, \(Machine.descriptors) after; memory \
        \(before.1) MiB before, \(Machine.memory.now) MiB after
        """)
}

/// Two sessions invite each other at the same time.
func crossings(_ count: Int) {
    let (puma, lynx) = pair()
    puma.wait { puma.found.contains(lynx.id) }
    lynx.wait { lynx.found.contains(puma.id) }
    var (failures, doubles, lost) = (0, 0, 0)
    for round in 0..<count {
        puma.renew()
        lynx.renew()
        let contexts = (Data("p\(round)".utf8), Data("l\(round)".utf8))
        let both = DispatchGroup()
        for (party, other, context) in [(puma, lynx, contexts.0), (lynx, puma, contexts.1)] {
            DispatchQueue.global().async(group: both) {
                party.browser.invitePeer(other.id, to: party.session, withContext: context, timeout: 30)
            }
        }
        both.wait()
        if !puma.wait(20, until: { puma.connected > 0 }) || !lynx.wait(20, until: { lynx.connected > 0 }) {
            failures += 1
        }
        if !puma.wait(20, until: { puma.contexts == [contexts.1] }) { lost += 1 }
        if !lynx.wait(20, until: { lynx.contexts == [contexts.0] }) { lost += 1 }
        if puma.connected != 1 || lynx.connected != 1 || puma.session.connectedPeers != [lynx.id] {
            doubles += 1
        }
        puma.session.disconnect()
        lynx.session.disconnect()
    }
    print("\(count) crossings: \(failures) failed, \(doubles) double or half, \(lost) contexts lost")
}

/// Invitations whose handlers are never called.
func dropped(_ count: Int) {
    let (puma, lynx) = pair()
    for _ in 0..<2 { drop(count, puma, lynx) }
}

private func drop(_ count: Int, _ puma: Party, _ lynx: Party) {
    lynx.accepts = false
    puma.wait { puma.found.contains(lynx.id) }
    var seen = 0
    puma.renew()
    for round in 0..<count {
        if round == count / 10 { print("after \(round): \(Machine.memory.now) MiB") }
        puma.browser.invitePeer(lynx.id, to: puma.session, withContext: Data(count: 1_000), timeout: 30)
        if puma.wait(20, until: { puma.ended == round + 1 }) { seen += 1 }
        if round % 100 == 99 { lynx.renew() }
    }
    print("\(count) dropped invitations: \(seen) ended at the inviter; \(Machine.memory.now) MiB")
    // By now everything has run out of its time.
    Thread.sleep(forTimeInterval: 35)
    print("35 s later: \(Machine.memory.now) MiB")
}
