import FourInARow
import Testing

@Suite struct DiscTests {
    @Test("The other of the other colour is the colour itself")
    func other() {
        for disc in Disc.allCases {
            #expect(disc.other != disc)
            #expect(disc.other.other == disc)
        }
    }
}
