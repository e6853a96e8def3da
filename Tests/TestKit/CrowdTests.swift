import Testing
import Worlds

@Suite("A crowd") struct CrowdTests {
    @Test func `is seen, renamed, listed and lost to the last peer, and a repeated sighting is no news`() {
        let crowd = Crowd(of: 600)
        #expect(crowd.appear() == 600)
        #expect(crowd.announceAll(as: "renamed") == 600)
        #expect(crowd.announceAll(as: "renamed") == 0)
        #expect(crowd.list() == 600)
        #expect(crowd.leave() == 0)
        crowd.end()
    }

    @Test func `of guests costs the same work a guest, however many there are`() {
        func work(of size: Int) -> (connecting: Double, message: Double) {
            let fanOut = FanOut(to: size)
            #expect(fanOut.connect() == size)
            let connected = fanOut.workDone
            #expect(fanOut.broadcast() == size)
            let sent = fanOut.workDone
            fanOut.end()
            return (Double(connected) / Double(size), Double(sent - connected) / Double(size))
        }
        let (few, many) = (work(of: 50), work(of: 400))
        #expect(many.connecting < few.connecting * 1.1)
        #expect(many.message < few.message * 1.1)
    }
}
