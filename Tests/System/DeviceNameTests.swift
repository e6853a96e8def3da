import NighCore
import NighSystem
import Testing

@Suite struct DeviceNameTests {
    @Test func `This device has a name`() {
        let name = DisplayName.ofThisDevice()
        #expect(!name.description.isEmpty && !name.description.contains("."))
        #expect(DisplayName(exactly: name.description) == name)
    }
}
