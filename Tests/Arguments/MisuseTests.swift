import Arguments
import Testing

@Suite struct MisuseTests {
    @Test("What is wrong is what is printed")
    func words() { #expect("\(Misuse("there is no --colour"))" == "there is no --colour") }
}
