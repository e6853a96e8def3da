import FourInARow
import Testing

@Suite struct DiscTests {
    @Test("Each colour is the other of the other")
    func other() {
        for disc in Disc.allCases {
            #expect(disc.other != disc)
            #expect(disc.other.other == disc)
        }
    }
}
