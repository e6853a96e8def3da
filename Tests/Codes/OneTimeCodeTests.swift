import NighCore
import Testing

@testable import NighCodes

@Suite struct OneTimeCodeTests {
    @Test func `There are 2,048 words, and the first four letters tell them apart`() {
        #expect(CodeWords.all.count == 1 << CodeWords.bits)
        #expect(Set(CodeWords.all.map { $0.prefix(4) }).count == CodeWords.all.count)
        for word in CodeWords.all { #expect(word.allSatisfy { $0.isASCII && $0.isLowercase }) }
    }

    @Test func `A code is read in capitals, with blanks, and from four letters of each word`() throws {
        let code = OneTimeCode.random(number: 7)
        #expect(try OneTimeCode("\(code)") == code)
        #expect(try OneTimeCode("\(code)".uppercased()) == code)
        let parts = "\(code)".split(separator: "-")
        #expect(try OneTimeCode(parts.joined(separator: " ")) == code)
        let short = parts.dropFirst().map { String($0.prefix(4)) }.joined(separator: "-")
        #expect(try OneTimeCode("7-\(short)") == code)
    }

    @Test func `A mistyped code names what is wrong with it, before anybody is called`() {
        #expect(throws: OneTimeCode.Fault.noNumber) { try OneTimeCode("crisp-otter-lamp") }
        #expect(throws: OneTimeCode.Fault.noNumber) { try OneTimeCode("1000-able-acid-army") }
        #expect(throws: OneTimeCode.Fault.wrongCount(2)) { try OneTimeCode("7-able-acid") }
        #expect(throws: OneTimeCode.Fault.unknownWord("xqzt")) { try OneTimeCode("7-able-xqzt-acid") }
    }

    @Test func `Two codes in a row have different words`() {
        #expect(Set((0..<100).map { _ in "\(OneTimeCode.random(number: 7))" }).count == 100)
    }
}
