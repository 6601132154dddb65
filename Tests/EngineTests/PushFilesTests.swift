import CurlMulti
import Foundation
import GatewayCore
import GatewayDelivery
import GatewaySigning
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayOperations

/// The files of a push configuration, valid and invalid.
@Suite struct PushFilesTests {
    private func configuration(
        _ credentials: [PushConfiguration.Credential] = [], ranges: [String] = [],
        apnsCA: String? = nil, webhookCA: String? = nil, services: [String] = [],
        serviceCA: String? = nil
    ) -> PushConfiguration {
        var configuration = PushConfiguration()
        configuration.apps = credentials.enumerated().map { place, credential in
            .init(
                place: place, app: "app\(place)", credential: credential,
                environments: [.production], forms: [:])
        }
        configuration.webhookRanges = ranges
        configuration.trust = apnsCA
        configuration.webhookTrust = webhookCA
        configuration.serviceRanges = services
        configuration.serviceTrust = serviceCA
        return configuration
    }

    private func faults(_ configuration: PushConfiguration) -> [String: String] {
        do throws(Faults) {
            _ = try PushFiles(configuration)
            return [:]
        } catch {
            return Dictionary(
                error.list.map { ($0.place, $0.message) }, uniquingKeysWith: { $1 })
        }
    }

    @Test func `a service account and a key of Web Push are read, or their fault is named`() throws
    {
        let directory = try GatewayProcess.temporaryDirectory()
        let key = try ServiceAccountKey()
        let sender = try SigningKey(generating: .es256)
        try sender.save(to: directory + "/vapid.pem")
        let account: JSONObject = [
            "type": "service_account", "project_id": "my-project", "client_email": "a@b",
            "private_key_id": "1",
            "private_key": .string(String(decoding: try key.pem(), as: UTF8.self)),
            "token_uri": "https://oauth2.googleapis.com/token",
        ]
        var configuration = PushConfiguration()
        configuration.fcm = [.init(place: 0, app: "app", file: directory + "/account.json")]
        configuration.webPush = [
            .init(place: 0, app: "app", key: directory + "/vapid.pem", subject: "mailto:a@b")
        ]
        func write(_ account: JSONObject) throws {
            try JSONValue.object(account).text.write(
                toFile: directory + "/account.json", atomically: true, encoding: .utf8)
        }
        try write(account)
        let files = try PushFiles(configuration)
        #expect(files.fcm["app"]?.key == key && files.fcm["app"]?.project == "my-project")
        #expect(files.webPush["app"]?.key == sender)
        try write(["project_info": ["project_id": "my-project"]])
        #expect(
            faults(configuration)["fcm.0.serviceAccount"]?
                .hasSuffix("which has the member type: service_account") == true)
        for name in account.members.map(\.name) where name != "type" {
            var broken = account
            broken[name] = name == "project_id" ? "../x" : "/ /"
            if name == "client_email" || name == "private_key_id" { broken[name] = nil }
            try write(broken)
            let found = faults(configuration)
            #expect(found.keys.sorted() == ["fcm.0.serviceAccount"])
            #expect(found.values.first?.hasSuffix("has no valid `\(name)`") == true, "\(found)")
        }
        try write(account)
        configuration.webPush[0].key = directory + "/account.json"
        #expect(faults(configuration).keys.sorted() == ["webPush.0.key"])
    }

    @Test func `what is right is read`() throws {
        let directory = try GatewayProcess.temporaryDirectory()
        let authority = try TestCertificate("ca", in: directory)
        let key = try SigningKey(generating: .es256)
        try key.save(to: directory + "/apns.p8")
        let pushed = try TestCertificate(pushesFor: "app", ca: authority.certificate)
        let byKey = PushConfiguration.Credential.key(
            team: "T", id: "K", file: directory + "/apns.p8")
        let byCertificate = PushConfiguration.Credential.certificate(
            file: pushed.certificate, key: pushed.key)
        let files = try PushFiles(
            configuration(
                [byKey, byCertificate], ranges: ["10.0.0.0/8", "fd00::/8"],
                apnsCA: authority.certificate, webhookCA: authority.certificate,
                services: ["192.168.0.0/16"]))
        guard case .key(let read)? = files.credentials[byKey],
            case .certificate? = files.credentials[byCertificate]
        else {
            Issue.record("not read: \(files.credentials.keys)")
            return
        }
        #expect(read.kid == key.kid)
        #expect(Set(files.certificateEnds.keys) == ["app1"])
        #expect(files.webhookRanges.count == 2 && files.serviceRanges.count == 1)
        // What backends' webhooks may have and show is nothing for services that clients choose.
        #expect(files.serviceTrust == .system && files.webhookTrust != .system)
    }

    @Test func `of an app with two certificates the first to expire counts`() throws {
        let directory = try GatewayProcess.temporaryDirectory()
        let authority = try TestCertificate("ca", in: directory)
        let credentials = try [30, 5, 90].map { days in
            let pushed = try TestCertificate(
                pushesFor: "app", ca: authority.certificate, days: days)
            return PushConfiguration.Credential.certificate(
                file: pushed.certificate, key: pushed.key)
        }
        var pushes = configuration(credentials)
        pushes.apps = pushes.apps.map { app in
            .init(
                place: app.place, app: app.place < 2 ? "two" : "one", credential: app.credential,
                environments: [.production], forms: [:])
        }
        let ends = try PushFiles(pushes).certificateEnds
        let days = ends.mapValues { Int(($0.timeIntervalSinceNow / 86_400).rounded()) }
        #expect(days == ["two": 5, "one": 90])
    }

    @Test func `other certificates in the same file are another trust`() throws {
        let directory = try GatewayProcess.temporaryDirectory()
        let file = try TestCertificate("ca", in: directory).certificate
        try SigningKey(generating: .es256).save(to: directory + "/apns.p8")
        let pushes = configuration(
            [.key(team: "T", id: "K", file: directory + "/apns.p8")], apnsCA: file,
            webhookCA: file)
        func share(_: String) -> ProviderTokenShare {
            ProviderTokenShare(read: { nil }, replace: { _, new in new })
        }
        let first = try PushFiles(pushes)
        let sender = APNsSender(pushes, first, share: share)
        let again = try PushFiles(pushes)
        #expect(again.webhookTrust == first.webhookTrust)
        #expect(APNsSender(pushes, again, after: sender, share: share).mended(since: sender) == [])
        _ = try TestCertificate("ca", in: directory)
        let other = try PushFiles(pushes)
        #expect(other.webhookTrust != first.webhookTrust)
        // Pushes that were stopped are released when the account changes.
        let next = APNsSender(pushes, other, after: sender, share: share)
        #expect(next.mended(since: sender) == [.init(app: "app0", .apns(.production))])
    }

    @Test func `every option that is wrong is named, and nothing of what is in its file`() throws {
        let directory = try GatewayProcess.temporaryDirectory()
        let authority = try TestCertificate("ca", in: directory)
        let first = try TestCertificate(pushesFor: "one", ca: authority.certificate)
        let second = try TestCertificate(pushesFor: "two", ca: authority.certificate)
        try SigningKey(generating: .edDSA).save(to: directory + "/ed25519.p8")
        let garbage = directory + "/garbage"
        try "-----BEGIN CERTIFICATE-----\nTOPSECRET\n-----END CERTIFICATE-----\n".write(
            toFile: garbage, atomically: true, encoding: .utf8)
        try Data(count: 100_000).write(to: URL(fileURLWithPath: directory + "/long"))
        let faults = faults(
            configuration(
                [
                    .key(team: "T", id: "1", file: directory + "/ed25519.p8"),
                    .key(team: "T", id: "2", file: directory + "/missing.p8"),
                    .key(team: "T", id: "3", file: first.certificate),
                    .certificate(file: first.certificate, key: second.key),
                    .certificate(file: garbage, key: first.key),
                    .certificate(file: directory + "/missing.pem", key: garbage + "2"),
                    .certificate(file: first.certificate, key: first.certificate),
                    .key(team: "T", id: "4", file: directory + "/long"),
                    .key(team: "T", id: "5", file: directory),
                ], ranges: ["10.0.0.0/8", "10.0.0.0/33", "here"], apnsCA: garbage,
                webhookCA: directory + "/missing.pem", services: ["there"], serviceCA: garbage))
        #expect(
            Set(faults.keys) == [
                "apns.0.key", "apns.1.key", "apns.2.key", "apns.3.certificateKey",
                "apns.4.certificate", "apns.5.certificate", "apns.5.certificateKey",
                "apns.6.certificateKey", "apns.7.key", "apns.8.key", "push.apnsCA",
                "push.serviceCA", "push.serviceRanges", "webhooks.allowedRanges", "webhooks.ca",
            ])
        #expect(faults["apns.3.certificateKey"]?.contains("does not match") == true)
        #expect(faults["apns.1.key"]?.contains("missing.p8") == true)
        #expect(!faults.values.contains { $0.contains("TOPSECRET") })
    }
}
