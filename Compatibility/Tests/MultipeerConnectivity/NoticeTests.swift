#if os(Linux)
    import MultipeerConnectivity
    import Testing

    /// Has methods that Swift takes for others than the delegate's: the array is not optional, the address is no `URL`.
    private final class NearMiss: NSObject, SilentDelegate {
        func session(
            _ session: MCSession, didReceiveCertificate certificate: [Any], fromPeer peerID: MCPeerID,
            certificateHandler: @escaping (Bool) -> Void
        ) { certificateHandler(false) }

        func session(
            _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
            fromPeer peerID: MCPeerID, at localURL: NSURL, withError error: (any Error)?
        ) {}
    }

    /// Lines on standard error about events that no delegate gets. Each of these programs is a process of its own.
    @Suite("On standard error", .timeLimit(.minutes(10))) struct NoticeTests {
        /// The lines that such a process has written.
        private func lines(_ result: ExitTest.Result?) throws -> [Substring] {
            String(decoding: try #require(result).standardErrorContent, as: UTF8.self).split(separator: "\n")
        }

        @Test("a program hears once of each method that has not exactly the types of the delegate's")
        func nearMiss() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                let (puma, lynx) = (MCPeerID(displayName: "Puma"), MCPeerID(displayName: "Lynx"))
                let session = MCSession(peer: puma)
                let delegate: any MCSessionDelegate = NearMiss()
                for certificate in [nil, [Data()], [Data()]] as [[Any]?] {
                    var accepts = false
                    delegate.session(
                        session, didReceiveCertificate: certificate, fromPeer: lynx,
                        certificateHandler: { accepts = $0 })
                    precondition(accepts)
                    let url: URL? = nil
                    delegate.session(
                        session, didFinishReceivingResourceWithName: "film", fromPeer: lynx, at: url,
                        withError: nil)
                }
            }
            let said = try lines(result).filter { $0.contains("NearMiss") }
            #expect(
                said == [
                    """
                    MultipeerConnectivity: NearMiss has no \
                    session(_:didFinishReceivingResourceWithName:fromPeer:at:withError:) with exactly the types of \
                    MultipeerConnectivity, so resources that come are lost
                    """,
                    """
                    MultipeerConnectivity: NearMiss has no \
                    session(_:didReceiveCertificate:fromPeer:certificateHandler:) with exactly the types of \
                    MultipeerConnectivity, so Lynx is accepted whatever its certificates are
                    """,
                ])
        }

        @Test("a program hears that another one of the same user is the same archived peer")
        func sameArchive() async throws {
            let puma = Device("Puma", service: Device.service())
            puma.advertiser.startAdvertisingPeer()
            let archive = try NSKeyedArchiver.archivedData(
                withRootObject: puma.id, requiringSecureCoding: true)
            let keys = NighMultipeer.settings.identityFolder
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                [archive = archive as Data, keys = keys as String] in
                NighMultipeer.configure {
                    $0.transports = "memory"
                    $0.identityFolder = keys
                }
                let peer = try #require(
                    try NSKeyedUnarchiver.unarchivedObject(ofClass: MCPeerID.self, from: archive))
                for service in ["first", "second"] {
                    MCNearbyServiceBrowser(peer: peer, serviceType: service).startBrowsingForPeers()
                }
            }
            #expect(try lines(result).count { $0.contains("another program of this user is Puma") } == 1)
            puma.end()
        }
    }
#endif
