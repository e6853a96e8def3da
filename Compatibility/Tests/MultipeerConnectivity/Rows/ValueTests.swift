import MultipeerConnectivity
import Testing

/// Rows 5, 23, 25 and 26 of the table in the guide, and those that compiling shows: values and errors.
@Suite("Values") struct ValueTests {
    @Test("of peers with one name are different, and copies are equal")
    func peers() {
        _ = transportsAreChosen
        let (first, second) = (MCPeerID(displayName: "Puma"), MCPeerID(displayName: "Puma"))
        #expect(first != second && first == first.copy() as? MCPeerID && first.displayName == "Puma")
        #expect(!MCPeerID(displayName: "").displayName.isEmpty)
        #expect([first: 1, second: 2][first] == 1 && Set([first, second, first]).count == 2)
        #expect(
            NSSet(array: [first, second]).contains(first) && first.hash == (first.copy() as? NSObject)?.hash)
    }

    @Test("of peers come back from archives of every kind")
    func archives() throws {
        _ = transportsAreChosen
        let peer = MCPeerID(displayName: "Puma")
        let data = try NSKeyedArchiver.archivedData(withRootObject: peer, requiringSecureCoding: true)
        let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: MCPeerID.self, from: data)
        #expect(back == peer && back?.displayName == "Puma" && back?.hash == peer.hash)
        let old = NSKeyedArchiver.archivedData(withRootObject: [peer, peer])
        #expect(NSKeyedUnarchiver.unarchiveObject(with: old) as? [MCPeerID] == [peer, peer])
        #expect(!String(decoding: data, as: UTF8.self).contains("PRIVATE"))
    }

    @Test("of errors are caught in each form")
    func errors() {
        _ = transportsAreChosen
        let session = MCSession(peer: MCPeerID(displayName: "Puma"))
        func send() throws { try session.send(Data(), toPeers: [], with: .reliable) }
        do { try send() } catch let error as NSError {
            #expect(error.domain == MCErrorDomain && error.code == MCError.Code.invalidParameter.rawValue)
        }
        do { try send() } catch let error as MCError { #expect(error.code == MCError.invalidParameter) } catch
        {
            Issue.record(error)
        }
        do { try send() } catch MCError.invalidParameter {} catch { Issue.record(error) }
        do { try send() } catch {
            #expect(
                (error as NSError).domain == MCErrorDomain && (error as? MCError)?.code == .invalidParameter)
            if case MCError.invalidParameter = error {} else { Issue.record(error) }
            #expect(!error.localizedDescription.isEmpty)
        }
        let object: any Error = NSError(domain: MCErrorDomain, code: 3)
        #expect((object as? MCError)?.code == .unsupported)
        #expect(MCError(.timedOut) == MCError(.timedOut) && MCError(.timedOut).errorCode == 4)
    }

    #if os(Linux)
        // Apple's framework throws an exception, which no test can catch.
        @Test(
            "of service types that are none, and of names that are too long, stop the program with a sentence",
            arguments: [
                ("no_underscore", "is not a service type"), ("double--hyphen", "is not a service type"),
                ("sixteen-letters-x", "is not a service type"),
                (String(repeating: "x", count: 64), "1 to 63 bytes"),
            ])
        func invalid(value: String, sentence: String) async throws {
            let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                [value] in
                let peer = MCPeerID(displayName: value)
                _ = MCNearbyServiceAdvertiser(peer: peer, discoveryInfo: nil, serviceType: value)
            }
            let said = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
            #expect(said.contains(sentence))
        }
    #endif

    @Test("of numbers are those of Apple's framework")
    func numbers() {
        #expect(kMCSessionMinimumNumberOfPeers == 2 && kMCSessionMaximumNumberOfPeers == 8)
        #expect(MCSessionState(rawValue: 2) == .connected && MCSessionSendDataMode.unreliable.rawValue == 1)
        #expect(MCEncryptionPreference.none.rawValue == 2 && MCErrorDomain == "MCErrorDomain")
    }
}
